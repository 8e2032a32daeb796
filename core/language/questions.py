"""What a question asks for: its slot, its category, the noun it asks about, its language; and abstentions."""

import re
from typing import Literal

from memcycle.core.entry import same_text
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

_FOREIGN: dict[str, tuple[tuple[Slot, str], ...]] = {
    "de": (
        ("how_many", r"\bwie ?viele?\b|\bwie oft\b|\bwie alt\b"),
        ("how_long", r"\bwie lange\b"),
        ("when", r"\bwann\b"),
        ("why", r"\b(?:warum|wieso|weshalb)\b"),
        ("who", r"\b(?:wer|wen|wem|wessen)\b"),
        ("where", r"\b(?:wo|wohin|woher)\b"),
        ("which", r"\bwelche[rsnm]?\b"),
        ("what", r"\bwas\b(?!\s+\w+\s*$)"),
        ("how", r"\bwie\b"),
        ("yes_no", r"^\W*(?:ist|sind|hat|haben|kann|wird|war|hast|bist)\b"),
    ),
    "fr": (
        ("how_long", r"\bcombien de temps\b|\bdepuis quand\b"),
        ("how_many", r"\bcombien\b|\bquel âge\b"),
        ("when", r"\bquand\b"),
        ("why", r"\bpourquoi\b"),
        ("where", r"\b(?:où|d'où)\b"),
        ("who", r"^\W*(?:à |avec )?qui\b"),
        ("which", r"\bquel(?:le)?s?\b|\blequel\b"),
        ("how", r"\bcomment\b"),
        ("yes_no", r"^\W*est-ce qu"),
        ("what", r"\b(?:qu'est-ce|que|quoi)\b|\bqu'"),
    ),
    "es": (
        ("how_long", r"\bcuánto tiempo\b"),
        ("how_many", r"\bcuánt[oa]s?\b"),
        ("when", r"\bcuándo\b"),
        ("why", r"\bpor qué\b"),
        ("who", r"\bquién(?:es)?\b"),
        ("where", r"\b(?:dónde|adónde)\b"),
        ("which", r"\bcuál(?:es)?\b"),
        ("how", r"\bcómo\b"),
        ("what", r"\bqué\b"),
    ),
    "it": (
        ("how_many", r"\bquant[oaie]\b"),
        ("when", r"\bquando\b"),
        ("why", r"\bperché\b"),
        ("who", r"^\W*chi\b"),
        ("where", r"\bdove\b|\bdov'è\b"),
        ("which", r"\bquale?i?\b"),
        ("what", r"\bche cosa\b|\bcosa\b"),
    ),
    "pt": (
        ("how_many", r"\bquant[oa]s?\b"),
        ("when", r"\bquando\b"),
        ("why", r"\bpor que\b"),
        ("who", r"\bquem\b"),
        ("where", r"\bonde\b"),
        ("which", r"\bqua(?:l|is)\b"),
        ("what", r"\bo que\b"),
    ),
    "zh": (
        ("how_long", r"多久|多长时间"),
        ("when", r"什么时候|何时|哪(?:一)?[天年月]|几号|幾時|什麼時候"),
        ("how_many", r"多少|几[个次岁]|幾[個次歲]"),
        ("why", r"为什么|為什麼|为何"),
        ("who", r"谁|誰"),
        ("where", r"在?哪[里儿裡]|什么地方|在哪"),
        ("which", r"哪[个一些種种]"),
        ("how", r"怎么|怎样|如何|怎麼"),
        ("yes_no", r"[吗嗎][?？]?\s*$"),
        ("what", r"什么|什麼|啥"),
    ),
    "ja": (
        ("when", r"いつ"),
        ("who", r"誰|だれ"),
        ("where", r"どこ"),
        ("how_many", r"いくつ|何[人個回歳]"),
        ("why", r"なぜ|どうして"),
        ("which", r"どの|どれ"),
        ("how", r"どう"),
        ("what", r"何|なに"),
    ),
    "ru": (
        ("how_many", r"\bсколько\b"),
        ("when", r"\bкогда\b"),
        ("why", r"\b(?:почему|зачем)\b"),
        ("who", r"\bк(?:то|ого|ому|ем)\b"),
        ("where", r"\b(?:где|куда|откуда)\b"),
        ("which", r"\bкак(?:ой|ая|ое|ие)\b"),
        ("how", r"\bкак\b"),
        ("what", r"\bчто\b"),
    ),
}  # fmt: skip
_FOREIGN_COMPILED = {
    language: tuple((slot, re.compile(pattern, re.IGNORECASE)) for slot, pattern in rules)
    for language, rules in _FOREIGN.items()
}
_FUNCTION_WORDS = {
    "en": "the a an of to and is was did does what which who when where how why in on for with has have her "
    "his as i would will do are were can could should be been about from he she it they that this at by",
    "de": "der die das und ist hat was wer wann wo wie mit von nicht ein eine welche warum im zu den "
    "dem ich du",
    "fr": "le la les de des et est a qui que quand où comment avec pour pas un une quel quelle pourquoi du "
    "il elle",
    "es": "el la los las de y es en qué quién cuándo dónde cómo con para no un una por cuál del su ha",
    "it": "il lo la gli di e è che chi quando dove come con per non un una perché del suo ha",
    "pt": "o a os as de e é em que quem quando onde como com para não um uma por qual do seu foi",
}
_FUNCTION_SETS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
_FOCUS = re.compile(
    r"\b(?:what|which|how many|how much)\s+(?:(?:kinds?|types?|sorts?|genres?)\s+of\s+)?"
    r"((?:[\w'’-]+\s+){0,3}?[\w'’-]+?)"
    rf"(?=\s+(?:{_AUXILIARY}|to|of|in|that|for|from|with|on|at|by)\b|[?,]|$)",
    re.IGNORECASE,
)
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
NOTHING = {
    "en": "I have nothing on that.",
    "de": "Dazu weiß ich nichts.",
    "fr": "Je n'ai rien à ce sujet.",
    "es": "No tengo nada sobre eso.",
    "it": "Non ho nulla su questo.",
    "pt": "Não tenho nada sobre isso.",
    "zh": "我没有这方面的记录。",
    "ja": "それについての記録はありません。",
    "ko": "그에 대한 기록이 없습니다.",
    "ru": "Об этом у меня ничего нет.",
}
"""What it says where it has nothing, by language."""
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
    """ISO 639-1 code of the question's language as far as scripts and function words show it, else `en`."""
    for language, script in _SCRIPTS:
        if script.search(question):
            return language
    words = re.findall(r"\w+", question[:MAX_QUESTION].casefold())
    counts = {language: sum(word in known for word in words) for language, known in _FUNCTION_SETS.items()}
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    # Words that several have tell none of them ("de" is French, Spanish, Dutch); the first word may.
    opens = [language for language in best if words and words[0] in _FUNCTION_SETS[language]]
    told = best if len(best) == 1 else opens
    return told[0] if len(told) == 1 and "en" not in best else "en"


def bare(question: str) -> str:
    """A question without its words of asking; an English one as it is, since those are stopwords."""
    language = question_language(question)
    for _, pattern in _FOREIGN_COMPILED.get(language, ()):
        question = pattern.sub(" ", question)
    small = _FUNCTION_SETS.get(language, frozenset()) if language != "en" else frozenset[str]()
    return " ".join(word for word in question.split() if word.casefold().strip("¿?¡!.,") not in small)


def asked_slot(question: str) -> Slot:
    """The kind of value a question asks for; `other` for what is no question known to the rules.

    A choice ("tea or coffee?") is `which`. Lists are told from their plural noun ("which cities").
    """
    text = question[:MAX_QUESTION]
    language = question_language(text)
    if language != "en":
        return next(
            (slot for slot, pattern in _FOREIGN_COMPILED.get(language, ()) if pattern.search(text)), "other"
        )
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
    if match is None:
        return ""
    phrase = match.group(1).strip()
    return (
        ""
        if re.match(rf"(?:{_AUXILIARY}|to|of|in|the|a|an|about)\b", phrase, re.IGNORECASE)
        else phrase.casefold()
    )


def is_question(text: str) -> bool:
    """Whether a text asks: a question mark, or an English question word or auxiliary first."""
    stripped = text.strip()[:MAX_QUESTION]
    if stripped.endswith(("?", "？")):
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
