"""Leaves no deleted text in any file of a home: in the ledger's, and in those of the vector index."""

from memcycle.core.scope import Scope
from memcycle.stores.chroma.client import to_clean
from memcycle.stores.chroma.files import merge_full_text
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger import entries, meta


def operator_note(mirror: Mirror) -> str | None:
    """What a person must do so that deleted text leaves the index's files, if anything.

    Known of the embedded index once it was used. Of a server it is known as long as collections are owed,
    and in a process that made some anew.
    """
    url = mirror.settings.chroma_url
    if url is not None and mirror.owed_collections():
        return to_clean(url, first="run `memcycle doctor`, ")
    return mirror.note or (mirror.index().note if mirror.is_open else None)


def wipe(mirror: Mirror) -> None:
    """Leaves no deleted text in any file of the home. Nothing where none is owed; safe to repeat.

    From a server's collections it is deleted; see `replace_collections` for the files.

    Raises:
        StoreBusy: another process is writing the index. All is owed still.
        StoreError: the index cannot be wiped now. The ledger is, and the rest is owed still.
    """
    ledger = mirror.ledger
    with ledger.read() as conn:
        of_items = meta.item_collections(conn)
        if not of_items and not meta.owed_scrubs(conn) and meta.owed_compaction(conn) is None:
            return
    # One at a time: who waited finds its own text wiped by another's wipe, mostly.
    with mirror.exclusive():
        with ledger.read() as conn:
            owed, mark = meta.owed_scrubs(conn), meta.owed_compaction(conn)
        if mark is not None:
            with ledger.write() as conn:
                merge_full_text(conn, "lexical")
            ledger.compact()
            ledger.checkpoint()
        if of_items:
            mirror.index().drop_leftover()
        if owed or of_items:
            _wipe_index(mirror, owed)
        if mark is not None and ledger.checkpoint():
            with ledger.write() as conn:
                meta.compacted(conn, mark)


def replace_collections(mirror: Mirror) -> None:
    """Makes those of a server anew that text was deleted from: its files keep the text while they stand.

    Not done at each deletion: a server keeps 2.6 MB in memory of every collection it ever had, and its files
    are clean only when its operator has done what `operator_note` says.

    Raises:
        StoreError: the index cannot be written now, or is another embedder's. The rest is owed still.
    """
    for shard in sorted(mirror.owed_collections()):
        # One at a time: others write and search in between, and another doctor may have made it anew.
        with mirror.exclusive():
            if shard in mirror.owed_collections():
                mirror.require_match()
                mirror.refill_shards({shard}, mirror.settings.bulk_batch)
                mirror.collections_replaced({shard})


def _wipe_index(mirror: Mirror, owed: list[meta.Owed]) -> None:
    index, url = mirror.index(), mirror.settings.chroma_url
    shards = {index.shard_of(one.scope) for one in owed}
    if url is None:
        mirror.refill_shards(shards)
        mirror.note = index.scrub()
    else:
        for one in owed:
            _delete_strays(mirror, one.scope)
        mirror.drain()
    with mirror.ledger.write() as conn:
        if url is not None:
            meta.owe_collections(conn, url, shards)
        meta.index_scrubbed(conn, owed)
        meta.item_collections_dropped(conn)


def _delete_strays(mirror: Mirror, scope: Scope) -> None:
    """Deletes what the index has of a base scope too many; of an erased one the outbox says nothing."""
    index = mirror.index()
    there = index.ids(scope)
    with mirror.ledger.read() as conn:
        wanted = set(entries.ids_of(conn, scope, statuses=["active"]))
    index.delete([(scope, one) for one in there - wanted])
