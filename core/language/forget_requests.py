"""Requests to forget: which sentences of a text ask for it, and what each names. By words, without a model.

A wrong erasure is worse than a missed one. "Don't forget that ...", "I forgot my keys", "forget it", a
quotation and a supposition ask for nothing; "delete the file" asks for something else.
"""

import re
from typing import NamedTuple

from memcycle.core.language.matter import statement_of
from memcycle.core.language.questions import function_words, is_question, question_language
from memcycle.core.language.sentences import FENCE, NEGATION, split_sentences
from memcycle.core.language.tokens import CHANGING, STOPWORDS, base_stems, tokenize, unaccented, word_set

_I = r"(?:i|i['’]\w+|we|my|our|he|she|they|you|your|it|the|his|her|their|there|a|an|(?-i:[A-Z])\w+)\b"
_DATA = "number|address|name|birthday|age|e-?mail|phone|details|data|password|pin|job|diagnosis|salary|diet"
_POLITE = (
    r"(?:(?:can|could|would|will) you |i(?:['’]d| would)? (?:want|need|like) you to |you (?:can|may|should) "
    r"|please |just |kindly |now )*"
)
_TU = r"(?:peux-tu |pourrais-tu |pouvez-vous |tu peux |veuillez )?"
_PUEDES, _PUOI = r"(?:¿?(?:puedes|podrías) )?", r"(?:puoi |potresti )?"
_NOT_KEPT = r"(?:do not|don['’]t|stop) (?:remember|keep|stor|sav)\w*"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # what was said of a thing; all that is known of it
        rf"{_POLITE}(?:forget|delete|erase|remove|wipe|clear|drop|discard|scrub) (?:about )?"
        r"(?P<all>everything|anything|all)?(?: of)? ?(?:(?:what(?:ever)?|that|the things?) )?"
        r"(?:i|we|you)(?:['’]ve| have)? ?(?:just |ever |once )?"
        r"(?:said|told|mentioned|wrote|know|remember|stored|saved|have)(?: to)?(?: you| me)? "
        r"(?:about|of|on|regarding|concerning) (?P<topic>.+)",
        rf"{_POLITE}(?:forget|delete|erase|remove|wipe|clear) (?P<all>everything|anything|all) "
        r"(?:about|on|of|regarding) (?P<topic>.+)",
        rf"{_POLITE}(?:forget|delete|erase|remove|wipe|drop|scrub) (?:the |my |that |your |all )*"
        r"(?:memory|memories|notes?|facts?|information|info|data|entry|entries) (?:about|of|on|regarding) "
        r"(?P<topic>(?!that\b).+)",
        # a statement
        rf"{_POLITE}(?:forget|delete|erase|remove|wipe|{_NOT_KEPT}) "
        rf"(?:the (?:fact|memory|note|thing) )?that (?P<clause>{_I}.+)",
        rf"{_POLITE}forget (?P<clause>(?:where|how|when|who|which|what|i|we) (?!to\b).+)",
        # a thing of theirs
        rf"{_POLITE}forget (?P<thing>(?:my|our|his|her|their|(?-i:[A-Z])\w+['’]s) .+)",
        rf"{_POLITE}forget about (?P<thing>(?:my|our) [^,;]+)",
        rf"{_POLITE}forget (?P<thing>the \w+ (?:of|about|for) (?:my|our|his|her|their) .+)",
        rf"{_POLITE}(?:delete|erase|remove|wipe|{_NOT_KEPT}) "
        rf"(?P<thing>(?:my|our|his|her|their) (?:[\w'’-]+ )*?(?:{_DATA})\b.*)",
        rf"{_POLITE}(?:delete|erase|remove|wipe) "
        rf"(?P<thing>.+?) from (?:your |the )?(?:memory|memories|notes)\b.*",
        # German, French, Spanish, Italian, Portuguese, Dutch
        r"(?:vergiss|vergesst|vergessen sie|lösche?|löschen sie|streiche?)(?: bitte| mal)*,? "
        r"(?:(?P<all>alles),?(?: was \w+)? (?:über|von|zu)|was ich (?:\w+ )?(?:über|von|zu)) "
        r"(?P<topic>.+?)(?: (?:gesagt|erzählt|geschrieben|erwähnt|weißt)\b.*)?",
        r"(?:(?:vergiss|vergesst|vergessen sie|lösche?|löschen sie|streiche?|merk dir nicht)(?: bitte| mal)*"
        r"|(?:kannst|könntest|würdest) du (?:bitte )?vergessen),? (?P<clause>(?:dass|wo|wann|wer|wie) .+)",
        r"(?:vergiss|vergesst|vergessen sie)(?: bitte| mal)* "
        r"(?P<thing>(?:mein|unser|de[rnm] \w+ mein|die \w+ mein|das \w+ mein)\w* .+)",
        r"(?:kannst|könntest|würdest) du (?:bitte )?(?P<thing>(?:mein|unser)\w* .+) (?:vergessen|löschen)\W*",
        rf"{_TU}(?:oublie[zr]?|efface[zr]?|supprime[zr]?) "
        r"(?:(?P<all>tout) (?:sur|ce que (?:je t['’]ai dit|tu sais) (?:sur|de))|ce que j(?:e t)?['’]ai dit "
        r"(?:sur|de|à propos de|au sujet de)) (?P<topic>.+)",
        rf"{_TU}oublie[zr]? "
        r"(?P<clause>(?:qu(?:e |['’])|où |quand |comment ).+)",
        rf"{_TU}oublie[zr]? "
        r"(?P<thing>(?:mon|ma|mes|notre|nos|l[ea'’] ?\w+ de (?:mon|ma|mes)) .+)",
        rf"{_PUEDES}(?:olvid(?:a|ar|e|es)(?:te|se)?|borra|borrar|elimina|eliminar) "
        r"(?:(?P<all>todo) (?:sobre|lo que (?:te dije|sabes) (?:sobre|de))|lo que (?:te )?(?:dije|conté"
        r"|he dicho) "
        r"(?:sobre|de|acerca de)) (?P<topic>.+)",
        rf"{_PUEDES}olvid(?:a|ar|e)(?:te|se)? (?:de )?(?P<clause>(?:que|dónde|cuándo|cómo) .+)",
        rf"{_PUEDES}olvid(?:a|ar|e)(?:te|se)? (?:de )?"
        r"(?P<thing>(?:mis?|nuestr[oa]s?|(?:el|la|los|las) \w+ de mis?) .+)",
        rf"{_PUOI}(?:dimentica(?:ti|re)?|scorda(?:ti)?|cancella|elimina) "
        r"(?:(?P<all>tutto) (?:su|di|quello che (?:ti ho detto|sai) (?:su|di))"
        r"|(?:quello|ciò) che (?:ti )?ho detto (?:su\w*|di|del\w*|riguardo a)) (?P<topic>.+)",
        rf"{_PUOI}(?:dimentica(?:ti|re)?|scorda(?:ti)?) (?:del fatto )?(?P<clause>(?:che|dove|quando) .+)",
        rf"{_PUOI}(?:dimentica(?:ti|re)?|scorda(?:ti)?) "
        r"(?P<thing>(?:(?:il|la|i|le|lo|gli) )?(?:\w+ de\w* )?(?:mi[oae]|miei|nostr\w+) .+)",
        r"(?:esque[cç][ae](?:-se)?|apag(?:a|ue)) (?:de )?"
        r"(?:(?P<all>tudo) (?:sobre|o que)|o que (?:eu )?(?:te )?disse (?:sobre|de)) (?P<topic>.+)",
        r"(?:esque[cç][ae](?:-se)?) (?:de )?(?P<clause>que .+)",
        r"(?:esque[cç][ae](?:-se)?) (?:d?[oa]s? )?(?P<thing>(?:meus?|minhas?) .+)",
        r"vergeet (?:alsjeblieft )?(?P<clause>(?:dat|waar|wanneer) .+)",
        r"vergeet (?:alsjeblieft )?(?P<thing>(?:mijn|onze?) .+)",
        # 忘记我的地址, 我的地址忘れて, 주소를 잊어 줘
        r"(?:请|請)?(?:你)?(?:忘记|忘掉|忘了|删除|刪除|删掉)(?P<thing>.+)",
        r"(?P<thing>.+?)(?:を|こと(?:を|は)?)(?:忘れて|消して|削除して).*",
        r"(?P<thing>.+?)(?:를|을|것을|건)? ?(?:잊어|삭제해) ?(?:줘|주세요).*",
    )
)
_LEAD = re.compile(
    r"^[\s(¡¿-]*(?:(?:hey|ok|okay|also|and|so|but|oh|sorry|actually|please|bitte|s['’]il (?:te"
    r"|vous) pla[iî]t|por favor"
    r"|per favore|by the way)\b[\s,:]*)*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:,? (?:please|bitte|por favor|per favore|s['’]il (?:te|vous) pla[iî]t|again|now))?[\s.!?。！？)]*$",
    re.IGNORECASE,
)
_MORE = re.compile(r"[,;] (?:and|but|i|we|it|that|he|she|they|ich|das|es|je|c['’]|lo|era)\b", re.IGNORECASE)
_QUOTES = re.compile(r"[\"“”„«»]")
_EMPTY = word_set(
    "that this it one ones thing things stuff idea said say told tell mentioned everything anything "
    "all fact memory "
    "memories note notes know remember please conversation us "
    "dass was wo wann wer wie que qu où quand comment donde dónde cuándo cómo che dove quando dat "
    "waar wanneer "
    "ich du wir mein meine meinen meinem meiner meines unser unsere unseren ein eine einen einem "
    "einer den dem des "
    "im am zu zum zur bei für auf und oder sie er je j tu il elle nous mon ma mes notre nos la les "
    "l du d en à au "
    "aux dans sur et avec yo me mi mis una al con y se lo io mio mia miei mie i gli di del della "
    "dei nel nella si "
    "e per eu meu minha meus minhas os as um uma do da em no na ik mijn een van te"
)


LONGEST = 500
"""Characters of a sentence that may be a request: longer ones tell something, and forms take their square."""


class Request(NamedTuple):
    """A request to forget.

    Attributes:
        text: The sentence, as it stands in the text. named: what it names, in its words.
        words: Stems of the words of that which tell something.
        whole: Whether everything of it is meant.
        topic: Whether it names what is spoken of, not what is said of it.
    """

    text: str
    named: str
    words: frozenset[str]
    whole: bool
    topic: bool


def requests_in(text: str) -> list[Request]:
    """The requests to forget of a text, in order; what names nothing is none."""
    plain = FENCE.sub(lambda fence: "\n" * len(fence[0]), text)
    found, quotes, end = list[Request](), 0, 0
    for begin, _, sentence in split_sentences(plain):
        quotes, end = quotes + len(_QUOTES.findall(plain, end, begin)), begin
        if quotes % 2 == 0 and (one := _request(sentence)):
            found.append(one)
    return found


def request_of(quote: str) -> Request | None:
    """What a sentence names that somebody else holds to be a request; None where it names nothing."""
    return _request(quote) or _made(
        quote, re.sub(r"\b(?:forget\w*|delet\w+|eras\w+|remov\w+|wip\w+)\b", " ", quote)
    )


def _request(sentence: str) -> Request | None:
    if len(sentence) > LONGEST:
        return None
    opening = _TAIL.sub("", _LEAD.sub("", sentence))
    for form in _FORMS:
        match = form.fullmatch(opening)
        if match is not None:
            groups = match.groupdict()
            named = next(groups[name] for name in ("topic", "clause", "thing") if groups.get(name))
            named = _MORE.split(named)[0]
            return _made(sentence, named, whole=bool(groups.get("all")), topic=bool(groups.get("topic")))
    return None


def _made(text: str, named: str, *, whole: bool = False, topic: bool = False) -> Request | None:
    words = telling(named)
    return Request(text, named, words, whole, topic) if words else None


def telling(text: str) -> frozenset[str]:
    """Stems of the words of a text that tell something."""
    small = (function_words(text) | STOPWORDS | _EMPTY) - {"ill", "shed", "hell", "wed"}  # no "I'll" here
    pairs = zip(tokenize(text), base_stems(text), strict=True)
    return frozenset(stem for word, stem in pairs if word not in small)


MORE = 3
"""Words more than the request's that a sentence of another language may hold, whose parts are not told."""
SHORT = 4
"""Letters of a stem whose forms may begin otherwise ("dying": "die")."""


def holds(request: Request, text: str, speaker: str | None) -> bool:
    """Whether a sentence speaks of what a request names: all its words, of one subject and thing."""
    return any(_says(request, sentence, speaker) for sentence in _holding(request, text))


def states(request: Request, text: str, speaker: str | None) -> bool:
    """The same, where the sentence states it: a question and a request do not."""
    return any(
        _says(request, one, speaker) and not is_question(one) and _request(one) is None
        for one in _holding(request, text)
    )


def says_only(text: str, request: Request) -> bool:
    """Whether a text is a request and nothing else."""
    return _LEAD.sub("", text).strip() == _LEAD.sub("", request.text).strip()


def repeats(request: Request, text: str) -> bool:
    """Whether a sentence of a text has all the words that a request names, whatever it makes of them."""
    return bool(_holding(request, text))


def _holding(request: Request, text: str) -> list[str]:
    folded = unaccented(text.casefold())
    alike = (word[:-2] for word in request.words - CHANGING if len(word) > SHORT and word.isalpha())
    if not all(word in folded for word in alike if word.isascii()):
        return []
    return [one for _, _, one in split_sentences(text) if request.words <= frozenset(base_stems(one))]


def _says(request: Request, sentence: str, speaker: str | None) -> bool:
    if request.topic:
        return True
    if bool(NEGATION.search(request.named)) != bool(NEGATION.search(sentence)):
        return False
    asked, said = statement_of(request.named, speaker), statement_of(sentence, speaker)
    if not (asked and said and asked.whose & said.whose):
        return False
    if question_language(sentence) != "en" or not request.named.isascii():
        return len(telling(sentence) - request.words) <= MORE
    return (asked.words & request.words) <= said.words | said.whose


def bears_on(request: Request, text: str) -> bool:
    """Whether a text that a role named speaks of what a request names: half of its words stand there."""
    return 2 * len(request.words & frozenset(base_stems(text))) >= len(request.words)
