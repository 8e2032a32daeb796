"""Which sentences of a turn state something, and where such a statement begins and ends."""

import re
from typing import Literal, NamedTuple

from memcycle.agents.rules.verbs import BASE, STATE, is_finite, is_past
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import content_stems, word_set

Stance = Literal["own", "elliptic", "pronoun", "said", "caption", "rule"]

_NAME = r"[A-Z][\w’'-]*"
_OPENER = re.compile(
    rf"""(?:
      (?:(?i:hey|hi|hello|wow|whoa|woah|oh|ah|aw+|yeah|yea|yep|yup|yes|no|nope|sure|well|so|anyway|anyways
        |ok|okay|haha|hah|lol
        |hmm+|ugh|omg|man|gosh|actually|btw|by\ the\ way|on\ another\ note|also|plus|and|but|honestly
        |absolutely|definitely
        |exactly|totally|totally\ agree|agreed|for\ sure|of\ course|no\ worries|no\ problem
        |guess\ what|you\ know|y'know
        |thanks(?:\ so\ much|\ a\ lot|\ again|\ for\ asking)?|thank\ you(?:\ so\ much)?|thx|cool|nice
        |awesome|great|amazing
        |woohoo|woo|yay
        |appreciate\ it|sounds\ good|fun\ fact|remember\ that|please\ remember\ that|remember
        |way\ to\ go|cheers|right
        |unfortunately|luckily|congrats|congratulations)
        (?:\ (?i:there|again|too))?(?:[,\ ]+{_NAME}(?=[,!.\ -]))?
        (?:\s*[,!.:]+|\s+[-–—]+|\s+(?=I\b|I['’]|my\b|we\b|[-–—]))
      )
      | {_NAME}\s*[,!]+(?=\s*(?:I\b|I['’]|[a-z]))
      | (?i:but|and|so|plus|also|speaking\ of\ which,?|turns\ out|like\ i\ said|to\ be\ honest|tbh
        |i\ (?:just\ )?(?:want|wanted|have|gotta|got)\ to
          \ (?:tell|say|share|mention|let)(?:\ (?:you|ya)(?:\ know)?)?(?:\ that)?
        |i\ (?:gotta|must|should)\ (?:say|admit|tell\ you)(?:\ that)?|something\ \w+\ (?:just\ )?happened)
        (?:\s+[-–—]+)?\s+(?=\w)
      | [-–—…,.!\s]+
      )\s*""",
    re.VERBOSE,
)
_REACTION = re.compile(
    r"""^(?:
      (?:(?:that|this|it|those|these|they|which)(?:['’]s|\s+(?:is|was|are|were|sounds?|looks?|must|seems?)|['’]re))
        \s+(?:(?:so|really|such|very|pretty|quite|just|be|have\ been|a|an|like|totally|super|too|been
        |great\ to\ hear)\s+)*\w+(?:\s+\w+)?
      |(?:so|how|what|such|really|very|pretty)\s+(?:a\s+|an\s+)?\w+(?:\s+\w+){0,3}
      |(?:sounds?|looks?|seems?)\s+(?:like\s+)?(?:\w+\s*){1,5}
      |(?:good|great|nice|glad|happy|sorry|proud|so\s+(?:glad|happy|proud|sorry))\s+(?:to\s+(?:see|hear|meet)|you|of\s+you|for\s+you|that\s+you|it).*
      |i['’]?a?m?\s*(?:so\s+|really\s+)?(?:glad|happy|proud|sorry)\s+(?:to\s+(?:see|hear)|you|of\s+you|for\s+you|that\s+you).*
      |(?:thanks|thank\s+you|congrats|congratulations|good\s+luck|best\s+of\s+luck|way\s+to\s+go|keep\b|take\s+care|talk\s+to|see\s+you|bye|hope\b).*
      |can['’]?t\s+wait(?:\s+to\s+(?:see|hear)\s+.*)?
      |(?:i\s+)?(?:totally\s+|completely\s+|really\s+|couldn['’]t\s+)?agree(?:\s+\w+){0,3}
      |(?:i\s+|i['’]d\s+)?love\s+(?:(?:that|it|this)\b|to\s+(?:hear|see)\s+(?:it|that|them|more|you|how|what)\b).{0,25}
      |(?:i\s+)?(?:really\s+)?appreciate\s+(?:it|that|you|your)\b.{0,50}
      |(?:here['’]?s?|check|take\s+a\s+look|look\s+at)\b.{0,40}
      |(?:(?:it|that)(?:['’]s|\s+is)\s+)?(?:always\s+)?(?:so\s+|really\s+|super\s+)?(?:good|great|nice|awesome|lovely|cool|wonderful|amazing|fun)\s+(?:to|catching|chatting|talking|seeing|hearing)\b.{0,40}
      |(?:it['’]?s?\s+been|long\s+time|been)\s+(?:a\s+while|ages|too\s+long|so\s+long|no\b).{0,40}|been\s+an?\b.*
      |i\s+hope\s+you\b.*|i['’]?ll\s+(?:let\s+you\s+know|keep\s+you\s+(?:posted|updated))\b.*|i\s+(?:bet|guess|see|know|understand|hear\s+you)\b(?:\s+\w+){0,4}
      |(?:so\s+)?much\s+(?:has\s+(?:happened|changed)\s*)?since\b.*|a\s+lot(?:['’]s|\s+has)?\s+(?:happened|changed)\b.*|(?:must|sounds|looks|seems)\b.*
      |things\s+(?:have\s+been|are)\s+\w+|something\b.{0,20}\bhappened\b.{0,15}
      |you\s+(?:got|can\s+do)\s+this|no\s+(?:worries|problem)|same\s+here|me\s+too|will\s+do
    )[\s.!,~…]*$""",
    re.VERBOSE | re.IGNORECASE,
)
_YOU = re.compile(r"^(?:you|your|you['’]\w+|hope|let['’]?s|let)\b", re.IGNORECASE)
_TAIL = re.compile(
    r",?\s+(?:so|and)\s+(?:let['’]s|make\s+sure|don['’]t\s+forget|feel\s+free)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(
    r",?\s*(?:right|eh|huh|you know|y'know|isn't it|don't you think|ya know)\s*\?+\s*$", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"^(?:it|they|this|that|these|those|he|she|there|his|her|their|its|both|which)\b", re.IGNORECASE
)
_FIRST = re.compile(r"(?:\bI\b|\b(?:me|my|mine|myself|we|us|our|ours)\b)", re.IGNORECASE)
_SUBJECT = re.compile(r"\b(?:I|we)\b|\w['’](?:s|re|ve|ll|d|m)\b|\w+n['’]t\b|\w+s\b\s+(?!of\b)", re.IGNORECASE)
_MOOD = word_set(
    """
    excited stoked pumped thrilled scared nervous determined tired swamped ready keen interested
    inspired grateful thankful blessed hooked obsessed hyped lucky busy sick exhausted
    """
)
_JOINT = re.compile(
    r"\s*(?:,\s+(?:and|but|so)\s+|\s+(?:and|but)\s+|;\s+|\s*[-–—]+\s+)(?=(?:I|we|my)\b|(?:I" r"|we)['’])",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"^(?:please,?\s+)?(?:from\s+now\s+on\b|(?:please\s+)(?:always|never|don['’]t)\b"
    r"|always\s+(?:answer|reply|use|write|call|address|respond)\b"
    r"|never\s+(?:answer|reply|use|write|call|respond)\b|call\s+me\b)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<=[a-z0-9!.])(?<!\b(?:in|at|to)),\s+[A-Z][a-z’'-]+[.!…]*$")
_CAPTION = re.compile(r"^\[image:\s*(?P<what>[^\]]*)\]$", re.IGNORECASE)
_FINITE_AFTER_ING = re.compile(
    r"\b\w+s\s+(?:me|us|my)\b|\b(?:is|was|are|were|has|have|had|can|will|must|should|could"
    r"|would|might|be|gets?|feels?|makes?|made|helps?|helped|gives?|gave|takes?|keeps?"
    r"|brings?)\b|(?<!to\s)\b(?:let|lets|need|needs|make|help|give)\b|['’]s\b"
)
_BEFORE_VERB = word_set("so super really just still finally also already totally")
_MISSING_SUBJECT = {"been": "I have ", "gonna": "I am "} | dict.fromkeys(
    ("gotta", "can't", "couldn't", "didn't", "haven't"), "I "
)
_NO_PROGRESSIVE = word_set(
    "nothing anything everything something during morning evening thing king ring spring"
)
MIN_WORDS, MIN_STEMS, MIN_CLAUSE = 3, 2, 4


class Statement(NamedTuple):
    """A span of a turn that states something.

    Attributes:
        begin, end: Its place in the turn's text. text: that span.
        stance: `own` speaks of the speaker, `elliptic` leaves "I" out, `pronoun` leans on what was said
            before, `said` speaks of other things, `caption` is an image's, `rule` a standing instruction.
    """

    begin: int
    end: int
    text: str
    stance: Stance


def statements(text: str) -> list[Statement]:
    """The statements of a turn in order; greetings, reactions, questions and pure requests are left out."""
    found: list[Statement] = []
    for begin, end, sentence in split_sentences(text):
        if caption := _CAPTION.match(sentence):
            if caption["what"].strip():
                found.append(Statement(begin, end, caption["what"].strip(), "caption"))
            continue
        stated = _trimmed(sentence)
        for start, stop in _clauses(text, begin + opener_length(stated), begin + len(stated)):
            piece = text[start:stop]
            stance = stance_of(piece)
            if stance is not None:
                found.append(Statement(start, stop, piece, stance))
    return found


def plain_statements(text: str) -> list[Statement]:
    """The sentences of a text in a language whose grammar the rules do not know; questions are left out."""
    return [
        Statement(begin, end, sentence, "said")
        for begin, end, sentence in split_sentences(text)
        if not is_question(sentence)
        and len(content_stems(sentence)) > MIN_STEMS
        and not _CAPTION.match(sentence)
    ]


def _trimmed(sentence: str) -> str:
    """A sentence without a closing "right?", "so let's ..." and name of who is spoken to."""
    plain = _TAIL.sub("", _TAG.sub("", sentence))
    address = _ADDRESS.search(plain)
    listed = address and plain[: address.start()].split()[-1][0].isupper()
    return plain[: address.start()] if address and not listed else plain


def opener_length(sentence: str) -> int:
    """How many characters of greeting, interjection or address come before the statement."""
    length = 0
    while match := _OPENER.match(sentence, length):
        if match.end() == length:
            break
        length = match.end()
    return length


def _clauses(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Coordinated clauses with a subject of their own, where both are long enough to stand alone."""
    spans, start = [], begin
    for joint in _JOINT.finditer(text, begin, end):
        left, right = text[start : joint.start()], text[joint.end() : end]
        # A clause that opens with "when" or "if" needs what follows it; "my mom and I went" is one subject.
        alone = not re.match(
            r"(?:when|if|although|though|since|while|as|because|after|before)\b", left, re.IGNORECASE
        )
        if _REACTION.match(left):
            start = joint.end()
        elif alone and _has_subject(left) and len(left.split()) >= MIN_CLAUSE <= len(right.split()):
            spans.append((start, joint.start()))
            start = joint.end()
    return [*spans, (start, end)]


def _has_subject(clause: str) -> bool:
    first = re.match(
        r"(?:I|we)(?:['’]\w+)?\s+\w+|my\s+(?:\w+\s+){1,3}(?:is|was|are|were|has|had|\w+ed" r"|\w+s)\b",
        clause,
        re.IGNORECASE,
    )
    return first is not None or elliptic(clause) is not None


def stance_of(piece: str) -> Stance | None:
    """How a piece states something, None when it does not."""
    words = re.findall(r"[\w'’]+", piece)
    if not words or is_question(piece):
        return None
    if _RULE.match(piece):
        return "rule"
    long_enough = len(words) >= MIN_WORDS and len(content_stems(piece)) >= MIN_STEMS
    if not long_enough or _REACTION.match(piece) or _YOU.match(piece):
        return None
    return _stance(piece, words)


def _stance(piece: str, words: list[str]) -> Stance | None:
    if elliptic(piece) is not None:
        return "elliptic"
    if _imperative(words[0].lower().replace("’", "'"), words[1].lower()):
        return None
    if _PRONOUN.match(piece):
        return "pronoun"
    if not _SUBJECT.search(piece) and not any(is_finite(word.lower()) for word in words):
        return None  # "Expression of myself and a way to relax."
    return "own" if _FIRST.search(piece) else "said"


def _imperative(first: str, following: str) -> bool:
    if first in {"just", "please", "always", "definitely", "so", "then"}:
        return following in BASE or following in {"be", "let"}
    return first in BASE or first in {"don't", "check", "let", "never", "be"}


def elliptic(piece: str) -> str | None:
    """What a sentence that leaves its subject out needs in front ("I ", "I have ", "I am "), else None."""
    words = re.findall(r"[\w'’]+", piece.lower().replace("’", "'"))
    first, following = [*words[:2], "", ""][:2]
    if first in _BEFORE_VERB and following:
        return elliptic(piece.split(maxsplit=1)[-1]) if len(piece.split()) > 1 else None
    if first in _MISSING_SUBJECT:
        return _MISSING_SUBJECT[first]
    if (first == "going" and following == "to") or first in _MOOD or _progressive(first, piece):
        return "I am "
    wish = first in STATE and following not in {"you", "your"}
    past = is_past(first) and following not in {"by", "with", "of", "is", "was"}
    return "I " if wish or past else None


def _progressive(first: str, piece: str) -> bool:
    """ "Thinking of moving", not "Painting is fun"."""
    if not first.endswith("ing") or first in _NO_PROGRESSIVE:
        return False
    return _FINITE_AFTER_ING.search(piece.split(",", maxsplit=1)[0]) is None
