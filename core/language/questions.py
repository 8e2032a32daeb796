"""What a question asks for: its slot, its category, the noun it asks about, its language; and abstentions."""

import re
from typing import Literal

from memcycle.core.entry import same_text
from memcycle.core.language.tokens import STOPWORDS
from memcycle.core.theta_space import Category

Slot = Literal[
    "who", "what", "where", "when", "how_many", "how_long", "why", "how", "yes_no", "which", "list", "other",
]  # fmt: skip

_AUXILIARY = (
    r"(?:do|does|did|is|are|was|were|am|has|have|had|can|could|will|would|should|shall|may|might|must|"
    r"isn't|aren't|wasn't|weren't|don't|doesn't|didn't|hasn't|haven't|hadn't|can't|couldn't|won't|wouldn't|shouldn't)"
)
_TIME_NOUN = r"(?:date|day|year|month|week|weekday|season|decade|century|time|hour|birthday)"
_PLACE_NOUN = (
    r"(?:city|country|place|town|state|location|village|continent|region|island|province|venue|"
    r"neighbou?rhood|street|address|hometown|area)"
)
_PERSON_NOUN = (
    r"(?:person|people|man|woman|friend|colleague|relative|family member|teacher|author|artist|singer)"
)
_SINGULAR_S = "is|was|has|does|this|us|its|as|always|class|process|business|address|bus|news|series|species"
_PLURAL = rf"(?!(?:{_SINGULAR_S})\b)\w{{2,}}(?<![siu])s"
_MODIFIERS = rf"(?:(?!(?:{_AUXILIARY}|to|in|of|the|a)\b)[\w'’-]+\s+){{0,2}}"

# The pattern found first in the question decides; of those found at the same place the first in this order.
_RULES: tuple[tuple[Slot, str], ...] = (
    ("how_long", r"\bhow (?:long|much (?:more )?time|many (?:hours|days|weeks|months|years|minutes))\b"),
    ("how_many", r"\bhow (?:many|much|often|old|tall|far|big|large|high|heavy|fast|expensive)\b"),
    ("how_many", r"\bwhat (?:is|was|are|were)? ?(?:the )?(?:number|amount|price|cost|age|total|count)\b"),
    ("when", r"\bwhen\b"),
    ("when", rf"\b(?:what|which)(?:'s| is| was)? (?:the )?(?:exact )?{_TIME_NOUN}\b(?! (?:of|in))"),
    ("why", r"\b(?:why|how come|for what reason|what (?:is|was|were|are) (?:the |\w+'s )?reasons?)\b"),
    ("who", r"\b(?:who|whom|whose)\b"),
    ("list", r"\b(?:what|which) (?:are|were) "),
    ("list", r"\b(?:what|which) (?:(?:kinds|types|sorts|genres) of|some|other|different|two|three|four)\b"),
    ("list", rf"\b(?:what|which) {_MODIFIERS}{_PLURAL}\b"),
    ("list", r"^\s*(?:list|name|enumerate)\b"),
    ("where", rf"\b(?:where|(?:what|which) {_MODIFIERS}{_PLACE_NOUN})\b"),
    ("who", rf"\b(?:what|which) {_PERSON_NOUN}\b"),
    ("which", r"\b(?:which|what (?:kind|type|sort|genre|color|colour|brand|breed))\b"),
    ("what", r"\b(?:what|what's)\b"),
    ("how", r"\bhow\b"),
)  # fmt: skip
_COMPILED = tuple((slot, re.compile(pattern, re.IGNORECASE)) for slot, pattern in _RULES)
_YES_NO = re.compile(rf"^\W*(?:(?:and|but|so|also)\s+|in [\w ]+,\s+)?{_AUXILIARY}\s+\S", re.IGNORECASE)
_CHOICE = re.compile(r"\b(\w[\w' .-]*?)\s+or\s+(\w[\w' .-]*)", re.IGNORECASE)
_FIRST_WH = re.compile(r"\b(?:who|whom|whose|what|which|where|when|why|how)\b", re.IGNORECASE)

# In other languages the first in this order decides.
_FOREIGN: tuple[tuple[Slot, str], ...] = (
    ("how_long", r"\b(?:wie lange|combien de temps|depuis quand|cuánto tiempo)\b|多久|多长时间"),
    (
        "how_many",
        r"\b(?:wie ?viele?|wie oft|wie alt|combien|quel âge|cuánt[oa]s?|quant[oaie]s?|сколько)\b"
        r"|多少|几[个次岁]|幾[個次歲]|いくつ|何[人個回歳]",
    ),
    (
        "when",
        r"\b(?:wann|quand|cuándo|quando|когда)\b|什么时候|何时|哪(?:一)?[天年月]|几号|幾時|什麼時候|いつ",
    ),
    (
        "why",
        r"\b(?:warum|wieso|weshalb|pourquoi|por qu[eé]|perché|почему|зачем)\b"
        r"|为什么|為什麼|为何|なぜ|どうして",
    ),
    (
        "who",
        r"\b(?:wer|wen|wem|wessen|quién(?:es)?|quem|к(?:то|ого|ому|ем))\b|^\W*(?:chi|(?:à |avec )?qui)\b"
        r"|谁|誰|だれ",
    ),
    (
        "where",
        r"\b(?:wo|wohin|woher|où|d'où|dónde|adónde|dove|dov'è|onde|где|куда|откуда)\b"
        r"|在?哪[里儿裡]|什么地方|在哪|どこ",
    ),
    (
        "which",
        r"\b(?:welche[rsnm]?|(?:le)?quel(?:le)?s?|cuál(?:es)?|quale?i?|quais|как(?:ой|ая|ое|ие))\b"
        r"|哪[个一些種种]|どの|どれ",
    ),
    ("how", r"\b(?:wie|comment|cómo|как)\b|怎么|怎样|如何|怎麼|どう"),
    ("yes_no", r"^\W*(?:(?:ist|sind|hat|haben|kann|wird|war|hast|bist)\b|est-ce qu)|[吗嗎][?？]?\s*$"),
    ("what", r"\b(?:was(?!\s+\w+\s*$)|quoi|qué|cosa|o que|что)\b|^\W*que\b|\bqu'|什么|什麼|啥|何|なに"),
)
_OTHERS = tuple((slot, re.compile(pattern, re.IGNORECASE)) for slot, pattern in _FOREIGN)
_FUNCTION_WORDS = {
    "en": "the a an of to and is was did does what which who when where how why in on for with has "
    "have her his as i would will do are were can could should be been about from he she it "
    "they that this at by",
    "de": "der die das und ist hat was wer wann wo wie mit von nicht ein eine welche welcher welches "
    "warum im zu den dem ich du sind mein meine bin es",
    "fr": "le la les de des et est a qui que quand où comment avec pour pas un une quel quelle "
    "pourquoi du il elle est-ce mon ma mes combien quoi sont qu",
    "es": "el la los las de y es en qué quién quiénes cuándo dónde cómo cuál cuánto cuántos con para "
    "no un una por del su ha donde quien cuando como cual que se le mi",
    "it": "il lo la gli i di e è che chi quando dove come con per non un una perché del suo ha cosa "
    "quale qual quanto quanti mia mio sono si al alla",
    "pt": "o a os as de e é em que quem quando onde como com para não um uma por qual do da seu foi "
    "minha meu se são",
    "ru": "где кто что когда как какой какая какие почему зачем сколько кого кому куда у меня мой моя "
    "в на не ли она он это и",
}
"""Of the languages a reply may be in."""
_TELLING = {"de": "heißt heisst wohnt alt", "fr": "habite", "es": "tiene vive", "it": "abita piace"}
"""What tells a language too, but is part of what is asked."""
_LOOKALIKES = {
    "nl": "de het een en van is wat waar wie wanneer hoe waarom welke heeft mijn met niet zijn in op "
    "heet woont",
    "ca": "el la els les de i és es en què qui quan on com amb per no un una del seva meva diu viu l",
    "ro": "și de la este ce cine când unde cum cu pentru nu un o pe lui în a mea se s că",
    "da": "hvad hvem hvor hvornår hvordan er en et den det og i på med har min",
    "sv": "vad vem var när hur är en ett den det och i på med har min",
    "id": "di ke dari apa siapa kapan mana nama yang dan ada berapa",
    "la": "quis quid ubi quando est et in non cum",
    "bg": "къде кой коя кога защо какво колко как е се на не ли от за и в са",
    "uk": "де хто коли чому скільки як що який яка у в є на не чи та і",
}
"""Of others that share some of these words: the reply to them is in English."""
_SMALL = {name: frozenset(words.split()) for name, words in (_FUNCTION_WORDS | _LOOKALIKES).items()}
_WORDS_OF = {name: words | frozenset(_TELLING.get(name, "").split()) for name, words in _SMALL.items()}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
)
_CJK = re.compile(r"[\u3040-\u30ff\uac00-\ud7af\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_SPANISH = re.compile(r"[¿¡]")
_FOCUS = re.compile(
    r"\b(?:what|which|how many|how much)\s+(?:(?:kinds?|types?|sorts?|genres?)\s+of\s+)?"
    r"((?:[\w'’-]+\s+){0,3}?[\w'’-]+?)"
    rf"(?=\s+(?:{_AUXILIARY}|to|of|in|that|for|from|with|on|at|by)\b|[?,]|$)",
    re.IGNORECASE,
)
_NO_FOCUS = re.compile(rf"(?:{_AUXILIARY}|to|of|in|the|a|an|about)\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:would|might|likely|probably|presumably|could (?:\w+ ){1,3}?be|considered|infer|suppose|"
    r"potentially|"
    r"what (?:kind|sort) of person|personality|traits?)\b"
    r"|\b(?:würde|wahrscheinlich|vermutlich|probablement|sans doute|probablemente|probabilmente|"
    r"provavelmente|вероятно)\b|可能|多分",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:both|in common|each of|all (?:of )?the|compared? (?:to|with)|difference between|respectively|"
    r"besides|"
    r"other than|apart from|more than one|every)\b|\band (?:who|what|when|where|why|how|which)\b",
    re.IGNORECASE,
)
_TOLD_TIME = re.compile(
    r"\b(?:before or after|how (?:recently|soon|old)|since when|until when|in what order)\b", re.IGNORECASE
)
_THAI = "ไหน|อะไร|ใคร|เมื่อไหร่|เมื่อไร|เมื่อใด|ทำไม|อย่างไร|ยังไง|เท่าไหร่|เท่าไร|เท่าใด"
_LAO = "ໃສ|ຫຍັງ|ໃຜ|ເມື່ອໃດ|ແນວໃດ|ເທົ່າໃດ"
_UNMARKED = re.compile(
    rf"(?:{_THAI}|ไหม|มั้ย|หรือไม่|หรือเปล่า|{_LAO}|ບໍ່?)(?:ครับ|คะ|ค่ะ|บ้าง|แน่|ແດ່)?\W*\Z|กี่[^\W_]|ຈັກ[^\W_]{{1,6}}\Z"
    rf"|\A(?:ใคร|ทำไม|{_LAO})|ប៉ុន្មាន|(?:ណា|អ្វី|ឬទេ)\W*\Z|(?:လဲ|လား)\W*\Z"
)
"""How one asks in Thai, Lao, Khmer and Burmese, which do without a mark."""
_SAYS = {
    "en": ("I have nothing on that.", "no longer so"),
    "de": ("Dazu weiß ich nichts.", "gilt nicht mehr"),
    "fr": ("Je n'ai rien à ce sujet.", "ce n'est plus le cas"),
    "es": ("No tengo nada sobre eso.", "ya no es así"),
    "it": ("Non ho nulla su questo.", "ora non più"),
    "pt": ("Não tenho nada sobre isso.", "já não é assim"),
    "zh": ("我没有这方面的记录。", "现已不再如此"),
    "ja": ("それについての記録はありません。", "今は違います"),
    "ko": ("그에 대한 기록이 없습니다.", "지금은 아님"),
    "ru": ("Об этом у меня ничего нет.", "больше не так"),
}
NOTHING = {language: nothing for language, (nothing, _) in _SAYS.items()}
"""What it says where it has nothing, by language."""
ENDED = {language: ended for language, (_, ended) in _SAYS.items()}
"""What it says of what holds no more."""
_ABSTAINS = re.compile(
    r"""^\W*(?:sorry,?\s+|unfortunately,?\s+)?(?:
      (?:(?:i|we)\s+(?:have|hold|find|found|see)|there(?:\s+is|['’]s)|(?:the\s+)?memory\s+(?:has|holds))
        \s+(?:no|nothing|not\s+any)\b.{0,80}
      |(?:i|we)\s+(?:do\s+not|don['’]t|cannot|can['’]t|could\s+not|couldn['’]t)
        \s+(?:know|tell|say|find|answer|remember|recall)\b.{0,80}
      |no\s+(?:\w+\s+)?(?:information|evidence|record|mention|memory|answer|details?|data)\b.{0,80}
      |(?:(?:it|that|this)\s+(?:is|was)\s+)?(?:not|un)[ -]?
        (?:mentioned|stated|specified|known|answerable|available|provided|clear|sure)\b.{0,40}
      |(?:it|that|this)\s+(?:cannot|can['’]t)\s+be\s+(?:answered|determined|told|known)\b.{0,40}
      |(?:the\s+)?(?:memory|evidence|conversation)\s+(?:does\s+not|doesn['’]t)
        \s+(?:say|mention|hold|tell|contain|state)\b.{0,80}
      |n/?a|none|unknown|nothing
    )[\s.!]*$""",
    re.VERBOSE | re.IGNORECASE,
)
_NOTHING = frozenset(same_text(text) for text in NOTHING.values())
MAX_QUESTION = 2000


def question_language(question: str) -> str:
    """ISO 639-1 code of the question's language where scripts or function words tell it, else `en`.

    In doubt it is English: a name or two in another script, or words that several languages have ("de" is
    French, Spanish and Dutch), tell nothing.
    """
    question = question[:MAX_QUESTION]
    for language, script in _SCRIPTS:
        if script.search(question):
            return language if len(_LATIN.findall(question)) <= 2 * len(_CJK.findall(question)) else "en"
    if _SPANISH.search(question):
        return "es"
    words = re.findall(r"\w+", question.casefold())
    counts = {language: sum(word in known for word in words) for language, known in _WORDS_OF.items()}
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    # Of those as likely the one whose word stands first.
    opens = [language for language in best if words and words[0] in _WORDS_OF[language]]
    told = best if len(best) == 1 else opens
    return told[0] if len(told) == 1 and "en" not in best and told[0] in _FUNCTION_WORDS else "en"


def function_words(text: str) -> frozenset[str]:
    """The function words of a text's language, as far as it is told."""
    return STOPWORDS if (found := question_language(text)) == "en" else _SMALL.get(found, frozenset())


def bare(question: str) -> str:
    """A question without its words of asking; an English one as it is, since those are stopwords."""
    language = question_language(question)
    if language == "en":
        return " ".join(question.split())
    for _, pattern in _OTHERS:
        question = pattern.sub(" ", question)
    small = _SMALL.get(language, frozenset())
    return " ".join(word for word in question.split() if word.casefold().strip("¿?¡!.,") not in small)


def asked_slot(question: str) -> Slot:
    """The kind of value a question asks for; `other` for what is no question known to the rules.

    A choice ("tea or coffee?") is `which`. Lists are told from their plural noun ("which cities").
    """
    text = question[:MAX_QUESTION]
    if question_language(text) != "en":
        return next((slot for slot, pattern in _OTHERS if pattern.search(text)), "other")
    if _YES_NO.match(text):
        return "which" if choices(text) else "yes_no"
    first = _FIRST_WH.search(text)
    asked = text[first.start() :] if first else text
    found = [
        (match.start(), order, slot)
        for order, (slot, pattern) in enumerate(_COMPILED)
        if (match := pattern.search(asked))
    ]
    return min(found)[2] if found else "other"


def opens_as_question(text: str) -> bool:
    """Whether a text of another language than English begins with one of its words of asking; a Chinese one
    may end with it."""
    language = question_language(text)
    found = [match for _, rule in _OTHERS if language != "en" for match in rule.finditer(text)]
    begins = any(not text[: match.start()].strip(" ¿¡") for match in found)
    return begins or (language == "zh" and any(match.end() == len(text.rstrip()) for match in found))


def question_category(question: str) -> Category:
    """The category of a question, by its own words alone; what fits none is `single`.

    `temporal` asks for a time or a duration, `inference` for what is likely rather than said, `multi` for
    several facts (lists, counts, comparisons, two questions in one), `yes_no` for one of two.
    """
    text = question[:MAX_QUESTION]
    slot = asked_slot(text)
    if slot in ("when", "how_long") or _TOLD_TIME.search(text):
        return "temporal"
    if _SUPPOSED.search(text):
        return "inference"
    if slot in ("list", "how_many") or _SEVERAL.search(text):
        return "multi"
    return "yes_no" if slot == "yes_no" or choices(text) else "single"


def choices(question: str) -> list[str]:
    """The alternatives of a choice question ("tea or coffee"), [] when it offers none."""
    match = _CHOICE.search(question.rstrip("?!. "))
    if match is None or re.search(
        r"\b(?:anything|something|not|more|so|else|other)\b", match.group(2), re.IGNORECASE
    ):
        return []
    left = re.split(
        rf"\b(?:{_AUXILIARY}|prefer|like|enjoy|in|to|a|an|the|either|of|on|with|by|at|than)\b",
        match.group(1),
        flags=re.IGNORECASE,
    )
    right = re.split(r"\b(?:in|on|at|for|as|when|after|before|during)\b", match.group(2), flags=re.IGNORECASE)
    second = re.sub(r"^(?:a|an|the)\s+", "", right[0].strip(), flags=re.IGNORECASE)
    first = " ".join(left[-1].split()[-max(1, len(second.split())) :])  # alternatives are alike in length
    pair = [first, second]
    return pair if all(pair) else []


def focus(question: str) -> str:
    """The noun phrase a what, which or how-many question asks about ("book", "places"), else ''."""
    match = _FOCUS.search(question[:MAX_QUESTION])
    phrase = match[1].strip() if match else ""
    return "" if _NO_FOCUS.match(phrase) else phrase.casefold()


def is_question(text: str) -> bool:
    """Whether a text asks: a question mark, or an English question word or auxiliary first.

    In scripts that do without the mark: a word of asking at the end, in Thai and Lao also at the start.
    """
    stripped = text.strip()[:MAX_QUESTION]
    if stripped.endswith(("?", "？")) or _UNMARKED.search(stripped):
        return True
    start = re.match(
        rf"(?:(?:and|but|so|then|ok|okay|hey|please)\W+)*"
        rf"(?:(?:who|what|where|when|why|how)(?:['’]?(?:s|re|d|ll|ve))?|whom|whose|which|{_AUXILIARY})\b\s+\w",
        stripped,
        re.IGNORECASE,
    )
    return start is not None and not stripped.endswith((".", "!"))


def abstains(answer: str) -> bool:
    """Whether an answer only says that nothing is known."""
    return same_text(answer) in _NOTHING or _ABSTAINS.match(answer) is not None


_ASKS_MEMORY = re.compile(
    r"\b(?:remember|forget|(?:make|take) (?:a )?note|note that|keep in mind|for the record|correction|i meant"
    r"|that(?:'|’)?s (?:wrong|not right)|actually|merk(?:e)? dir|vergiss|denk daran|korrektur|souviens-toi|"
    r"rappelle-toi|oublie|note bien|recuerda|olvida|corrección|ricorda(?:ti)?|dimentica|onthoud|vergeet)\b"
    r"|记住|忘记|忘掉|更正|覚えて|忘れて|訂正",
    re.IGNORECASE,
)


def asks_memory(text: str) -> bool:
    """Whether somebody may be asking that something be remembered, forgotten or put right.

    Broad on purpose: it only decides whether what was said is read at once or with what follows it.
    """
    return _ASKS_MEMORY.search(text) is not None
