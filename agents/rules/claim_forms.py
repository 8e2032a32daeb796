"""How English says where a person lives and works, what they like, own, do and no longer do."""

import re
from typing import Literal, NamedTuple

Slot = Literal[
    "home", "employer", "occupation", "taught", "tie", "favourite", "taste", "habit", "owned", "switch"
]

_WHO = r"(?P<who>[A-Z][\w-]*(?:['’]s?\s+(?!(?:is|was|has)\b)[a-z][\w-]*(?:\s+[A-Z]\w+)?)?)"
_GAP = (
    r"(?:\s+(?:and\s+others|has|have|had|is|are|recently|just|finally|now|also|actually"
    r"|currently|still|already|even|always|really|officially|both))*\s+"
)
_PLACE = r"(?P<value>[A-Z][\w’'-]*(?:\s+[A-Z][\w’'-]*)*)"
_REST = (
    r"(?P<value>[^.,;!?()]+?)(?=\s+(?:because|but|since|when|so|while|although|and|after"
    r"|before|until|with(?!\s+milk))\b|[.,;!?()]|$)"
)
_TIES = ("single", "married", "engaged", "divorced", "widowed", "separated")
_LEFT_FOR_GOOD = r"(?!\s+(?:at|early|late|around|before|after|with)\b)"
_GROUP = (
    r"(?:band|team|club|choir|group|company|firm|startup|gym|course|class|program|programme"
    r"|school|university|college|church|league|committee|board|orchestra|job)"
)


class Form(NamedTuple):
    """A way of saying something about `who`, with its `value`.

    `change`: said this way it is new. `ended`: it holds no more.
    """

    slot: Slot
    pattern: re.Pattern[str]
    change: bool
    ended: bool


def _form(slot: Slot, pattern: str, *, change: bool = False, ended: bool = False) -> Form:
    return Form(slot, re.compile(pattern), change, ended)


FORMS: tuple[Form, ...] = (
    _form(
        "home",
        rf"{_WHO}{_GAP}(?:moved|relocated)(?:\s+back)?(?:\s+from\s+[A-Z]\w+)?\s+to\s+(?:an?\s+"
        rf"[a-z ]+?\s+in\s+)?{_PLACE}",
        change=True,
    ),
    _form(
        "home",
        rf"{_WHO}{_GAP}(?:lives?|living|resides?|lived|based)\s+(?:[a-z]+\s+){{0,3}}?in\s+" rf"{_PLACE}",
    ),
    _form(
        "home",
        rf"{_WHO}{_GAP}(?:no\s+longer\s+(?:lives?|resides?|living)\s+in|(?:doesn't|does\s+not"
        rf"|don't)\s+live\s+in|moved\s+(?:away\s+from|out\s+of))\s+{_PLACE}",
        ended=True,
    ),
    _form(
        "employer",
        rf"{_WHO}{_GAP}(?:works?|working|worked|employed|teaches|teaching|interns?"
        rf"|interning)\s+(?:[a-z]+\s+){{0,5}}?(?:at|for|with)\s+{_PLACE}",
    ),
    _form("employer", rf"{_WHO}{_GAP}(?:works?|working|worked)\s+at\s+(?:an?|the)\s+{_REST}"),
    _form(
        "employer",
        rf"{_WHO}{_GAP}(?:joined|started\s+(?:working\s+)?(?:[a-z]+\s+){{0,4}}?(?:at|for|with)"
        r"|(?:got|landed|took|accepted)\s+a\s+(?:new\s+)?(?:[a-z]+\s+)?(?:job|position"
        rf"|role)\s+(?:[a-z]+\s+){{0,4}}?(?:at|with|for))\s+{_PLACE}",
        change=True,
    ),
    _form("occupation", rf"{_WHO}{_GAP}(?:works?|working|employed)\s+(?:[a-z]+\s+)?as\s+an?\s+{_REST}"),
    _form(
        "occupation",
        rf"{_WHO}{_GAP}(?:became|(?:got|landed|took|accepted)\s+a\s+(?:new\s+)?(?:job|position"
        rf"|role)\s+as|started\s+(?:working\s+|(?:a\s+)?new\s+job\s+)?as)\s+an?\s+{_REST}",
        change=True,
    ),
    _form(
        "occupation",
        rf"{_WHO}\s+(?:(?:now|currently|still)\s+)?is\s+(?:(?:now|currently" rf"|still)\s+)?an?\s+{_REST}",
    ),
    _form("taught", rf"{_WHO}{_GAP}(?:teaches|teaching)\s+(?P<value>[a-z]+)\b"),
    _form(
        "employer",
        rf"{_WHO}{_GAP}(?:quit|left|lost|resigned\s+from)\s+(?:(?:her|his|their|the|a"
        r"|[A-Z]\w*['’]s?)\s+)?(?:\w+\s+)?job(?:\s+(?:at|as|with|for)\s+(?:an?\s+"
        r"|the\s+)?(?P<value>[\w ]+?))?(?=\s+(?:yesterday|last|today|this|because|to|and)\b"
        r"|[.,;!?]|$)",
        change=True,
        ended=True,
    ),
    _form(
        "employer",
        rf"{_WHO}{_GAP}(?:(?:was|got|been)\s+(?:fired|laid\s+off|let\s+go)|retired"
        r"|resigned)(?:\s+(?:from|by|at)\s+(?P<value>[A-Z]\w+))?",
        change=True,
        ended=True,
    ),
    _form(
        "employer",
        rf"{_WHO}{_GAP}(?:quit|left|resigned\s+from|no\s+longer\s+(?:works?|teaches"
        rf"|working)\s+(?:at|for|with))\s+{_PLACE}{_LEFT_FOR_GOOD}",
        change=True,
        ended=True,
    ),
    _form(
        "tie",
        rf"{_WHO}\s+(?:(?:is|are|has|have|just|now|been|still|got|recently|finally"
        rf"|officially)\s+)+(?P<value>{'|'.join(_TIES)})\b(?!\s+up\b|\s+in\s+(?!spring|summer"
        r"|autumn|winter|[A-Z]|\d))",
    ),
    _form(
        "tie",
        rf"{_WHO}{_GAP}(?:broke\s+up|split\s+up|broken\s+up)\s+with\b(?P<value>)",
        change=True,
        ended=True,
    ),
    _form("tie", rf"{_WHO}{_GAP}(?:dating|seeing|has\s+a)\s+(?P<value>girlfriend|boyfriend|someone)\b"),
    _form(
        "favourite",
        r"(?P<who>[A-Z][\w-]*['’]s?\s+(?:\w+\s+)?favou?rite\s+[\w ]+?)\s+(?:is"
        r"|are)\s+(?:now\s+)?" + _REST,
    ),
    _form(
        "taste",
        rf"{_WHO}{_GAP}(?:likes?|loves?|enjoys?|adores?|into|an?\s+(?:big\s+"
        rf"|huge\s+)?fan\s+of)\s+(?:to\s+)?{_REST}",
    ),
    _form(
        "taste",
        rf"{_WHO}{_GAP}(?:hates?|dislikes?|detests?|can['’]?t\s+stand|cannot\s+stand"
        r"|(?:doesn['’]t|does\s+not|don['’]t)\s+(?:really\s+|even\s+)?(?:likes?|loves?|enjoys?)"
        r"|no\s+longer\s+(?:likes?|loves?|enjoys?)|tired\s+of|(?:not|never)\s+(?:liked|enjoyed"
        rf"|(?:an?\s+)?fan\s+of))\s+(?:to\s+)?{_REST}",
        ended=True,
    ),
    _form("habit", rf"{_WHO}{_GAP}no\s+longer\s+{_REST}", change=True, ended=True),
    _form(
        "habit",
        rf"{_WHO}{_GAP}(?:completely\s+)?(?:stopped(?!\s+(?:the|an?|h[ie][sr]|their)\b)|quit"
        r"|gave\s+up|given\s+up|cancelled|canceled"
        rf"|dropped\s+out\s+of)\s+(?!by\b|at\b|in\b|for\b|to\b|on\b){_REST}",
        change=True,
        ended=True,
    ),
    _form(
        "habit",
        rf"{_WHO}\s+(?:doesn['’]t|does\s+not|isn['’]t|is\s+not"
        r"|hasn['’]t\s+got)\s+(?P<value>[^.,;!?]+?)\s+(?:anymore|any\s+more|any\s+longer)\b",
        change=True,
        ended=True,
    ),
    _form(
        "habit",
        rf"{_WHO}{_GAP}left\s+(?P<value>(?:the|her|his|their|a"
        rf"|[A-Z]\w*['’]s)\s+(?:[\w-]+\s+){{0,2}}?{_GROUP})\b",
        change=True,
        ended=True,
    ),
    _form(
        "owned",
        rf"{_WHO}{_GAP}(?:sold|gave\s+away|donated|got\s+rid\s+of|scrapped)\s+(?:(?:her|his"
        rf"|their|the|[A-Z]\w*['’]s?)\s+)(?:old\s+)?{_REST}",
        change=True,
        ended=True,
    ),
    _form(
        "switch",
        rf"{_WHO}{_GAP}(?:switched|migrated|changed)\s+(?:[\w’']+\s+){{0,3}}?from\s+"
        r"(?P<value>[\w# +-]+?)\s+to\s+\w+",
        change=True,
        ended=True,
    ),
    _form(
        "switch",
        rf"{_WHO}{_GAP}(?:replaced|swapped)\s+(?:(?:her|his|their|the"
        r"|[A-Z]\w*['’]s?)\s+)?(?P<value>[\w# +-]+?)\s+(?:with|by|for)\s+\w+",
        change=True,
        ended=True,
    ),
)
