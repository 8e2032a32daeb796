"""Whether a text tells anything: one of questions, thanks, greetings and fillers alone is no evidence.

Built to find that something is told in doubt: a filler beside the evidence costs some tokens, a statement
taken for one is lost. So only what ends by asking, or opens as questions do, asks; only words of the list
below are fillers, or, in whatever language, a word that stands alone.
"""

import re

from memcycle.core.language.questions import abstains, opens_as_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import STOPWORDS, word_set

_YES_NO = word_set(
    """
    yes yeah yep yup no nope nah never always often sometimes maybe definitely absolutely sure
    ja nein doch nie immer oui non si jamais toujours sí nunca siempre sì mai sempre sim não sempre nee
    nooit да нет никогда всегда tak nie evet hayır
    """
)
_FILLERS = _YES_NO | word_set(
    """
    thank thanks thx ty cheers hello hi hey hiya howdy greetings morning afternoon evening night day weekend
    good great nice cool awesome amazing wonderful fantastic perfect excellent lovely brilliant super sweet
    neat fine ok okay k alright right certainly exactly indeed agreed true wow oh ah aha hm hmm mm um uh
    haha hahaha hehe lol see got understood noted makes sense sound sounds bye goodbye later soon welcome
    much problem worries sorry please well pleasure appreciate appreciated helpful help helps helped
    interesting continue go ahead next again done know mind glad happy hear talk care luck idea point news
    really lot let
    danke dankeschön dank vielen bitte hallo guten tag morgen abend nacht tschüss genau klar toll prima schön
    gut sehr alles verstehe verstanden ach so
    merci beaucoup bonjour salut bonsoir accord génial parfait bien très au revoir
    gracias muchas hola buenos buenas días tardes noches vale genial perfecto muy adiós hasta luego claro
    grazie mille ciao buongiorno buonasera va bene perfetto ottimo capito certo
    obrigado obrigada muito olá oi bom dia boa tarde noite ótimo perfeito tchau tudo bem
    bedankt je wel hoi goed
    спасибо большое привет здравствуйте хорошо понятно отлично пока
    dziękuję cześć teşekkürler merhaba tamam شكرا مرحبا نعم
    谢谢 謝謝 谢谢你 你好 您好 好 好的 嗯 明白 明白了 再见 再見 是的 不客气
    ありがとう ありがとうございます こんにちは こんばんは おはよう はい わかりました なるほど さようなら
    감사합니다 고마워요 안녕하세요 네 알겠습니다
    """
)
_MATTERS = word_set(
    """
    morning afternoon evening night day weekend tag abend nacht noite tarde notte problem mind care luck idea
    point news help talk pleasure
    """
)
"""Fillers that may as well be what somebody looks for, where nothing else is said."""
_THANKS = re.compile(r"\b(?:thank|thanks|thx|danke|merci|gracias|grazie|obrigad[oa]|bedankt|спасибо)\b", re.I)
_ASKS = re.compile(r"[?？؟][^\w.]*(?:\[[^\]]*\]\s*)?\Z")
_AUXILIARY = r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall)(?:n['’]t)?"
_OPENS = re.compile(
    rf"\W*(?:(?:and|but|so|then|ok|okay|hey|hi|please|well|now)\W+)*(?:"
    rf"(?:who|whom|what|where|when|why|how|(?:what|which|whose|how)\s+\w+(?:\s+\w+)?)\s+{_AUXILIARY}\s+\w"
    r"|(?:who|what|where|when|how)['’](?:s|re)\b"
    rf"|{_AUXILIARY}\s+(?:i|you|we|they|he|she|it|there|anyone|anybody)\b)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\W*(?:(?:and|but|so|then|ok|okay|hey|hi|please|well|now)\W+)*(?:(?:tell|show|give)\s+me\b"
    r"|remind\s+me\s+(?:again\s+)?(?:who|what|where|when|why|how|which|if|whether|of)\b)",
    re.IGNORECASE,
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MOST = 12
"""Words of the longest filler."""
_FEW = 5
"""Words of the longest reply that is not understood without its question, and of the longest question without
a question mark in other languages than English, whose words of asking open other sentences too."""
_SHORT = 60
"""Characters of such a question."""


def tells(text: str, *, answers: bool = False) -> bool:
    """Whether a text tells anything beyond questions, requests, thanks, greetings and fillers.

    Args:
        answers: Whether it follows a question of somebody else: then "Yes." and "Graz." tell something.
    """
    parts = [sentence for _, _, sentence in split_sentences(text) if not asks(sentence)]
    if answers and not _THANKS.search(text):
        words = [_words(part) for part in parts if not abstains(part) or len(_words(part)) == 1]
        if any(word in _YES_NO or not _is_filler(word) for part in words for word in part):
            return True
    return any(_says_something(part) and not abstains(part) for part in parts)


def is_small_talk(text: str) -> bool:
    """Whether nothing in memory can bear on it: words of courtesy or assent alone, or no word at all."""
    words = _words(text)
    if not all(map(_is_filler, words)) or any(asks(part) for _, _, part in split_sentences(text) if words):
        return False
    return not words or not _MATTERS.issuperset(words)


def asks(sentence: str) -> bool:
    """Whether a sentence asks: for something to be told, or to be done."""
    if _ASKS.search(sentence) or _REQUEST.match(sentence):
        return True
    if sentence.rstrip().endswith((".", "!", "。")):
        return False
    return _OPENS.match(sentence) is not None or (
        len(sentence) < _SHORT and opens_as_question(sentence) and len(_words(sentence)) <= _FEW
    )


def question_of(reply: str, before: str) -> str:
    """The question at the end of what was said before, where so short a reply needs it to be understood."""
    if len(_words(reply)) > _FEW or not asks(before) or asks(reply):
        return ""
    return split_sentences(before)[-1][2]


def _says_something(sentence: str) -> bool:
    words = _words(sentence)
    if len(words) > _MOST:
        return True
    left = [word for word in words if not _is_filler(word)]
    return len(left) > 1 or (bool(left) and (len(words) > 1 or any(map(str.isdigit, left[0]))))


def _words(sentence: str) -> list[str]:
    """Its words without apostrophes; of a script without spaces each two signs of what is no filler."""
    found: list[str] = []
    for word in _WORD.findall(sentence.casefold()):
        plain = word.replace("'", "").replace("’", "")
        whole = plain in _FILLERS or not _UNSPACED.match(plain)
        found += [plain] if whole else [plain[at : at + 2] for at in range(0, len(plain), 2)]
    return found


def _is_filler(word: str) -> bool:
    return word in _FILLERS or word in STOPWORDS
