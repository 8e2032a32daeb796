"""Irregular English verbs: their past forms meet their base form, which no stemmer sees."""

from collections.abc import Iterable

from memcycle.core.language.tokens import stems
from memcycle.core.per_text import per_text

_FORMS = """
    be was were been am is are; become became; begin began begun; bite bit bitten; blow blew blown; break
    broke broken; bring brought; build built; buy bought; catch caught; choose chose chosen; come came;
    deal dealt; dig dug; do did done; draw drew drawn; drink drank drunk; drive drove driven; eat ate
    eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown; forget forgot
    forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went
    gone; grow grew grown; hang hung; have had has; hear heard; hide hid hidden; hold held; keep kept;
    know knew known; lay laid; lead led; leave left; lend lent; lose lost; make made; mean meant; meet
    met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen;
    sell sold; send sent; shake shook shaken; shine shone; shoot shot; show shown; sing sang sung; sink
    sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; stand stood; steal stole stolen;
    stick stuck; strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took
    taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand
    understood; wake woke woken; wear wore worn; weave wove woven; win won; write wrote written; child
    children; man men; woman women; foot feet; tooth teeth; mouse mice; person people; wife wives
"""
IRREGULAR: dict[str, str] = {
    form: base for base, *forms in (group.split() for group in _FORMS.split(";")) for form in forms
}
"""Base form by irregular form, as written ("went": "go"); plurals of nouns are among them."""
_BASE: dict[str, str] = {stem: stems(base)[0] for form, base in IRREGULAR.items() for stem in stems(form)}


@per_text(4096)
def base_stems(text: str) -> tuple[str, ...]:
    """The stems of a text with irregular forms brought to their base ("went" and "go" meet); in order.

    Cached: the roles of one question read the same sentences.
    """
    return tuple(based(stems(text)))


def based(words: Iterable[str]) -> list[str]:
    """Stems with those of irregular forms replaced by that of their base."""
    return [_BASE.get(stem, stem) for stem in words]
