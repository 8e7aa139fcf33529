"""How RocksDB is set up: small memory of its own, since the hot part lives in our columns."""

from __future__ import annotations

from rocksdict import BlockBasedOptions, Cache, DataBlockIndexType, DBCompressionType, Options, WriteOptions

MIB = 1 << 20
FAMILIES = ("urls", "links", "log", "rows")
OWNED = ("default", "urls", "links", "rows")  # families whose keys begin with a crawl's number
CACHE_BYTES = 16 * MIB
MEMTABLES_BYTES = 24 * MIB
WAL_BYTES = 64 * MIB  # bounds what is read again after a crash
POINT_LOOKUPS = ("default", "links")  # of keys that may not be there


def database() -> Options:
    options = _common()
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(MEMTABLES_BYTES)
    options.set_max_total_wal_size(WAL_BYTES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(3)
    options.set_max_log_file_size(4 * MIB)
    options.set_max_manifest_file_size(8 * MIB)
    options.set_manifest_preallocation_size(256 * 1024)
    options.set_bytes_per_sync(MIB)
    return options


def families() -> dict[str, Options]:
    cache = Cache(CACHE_BYTES)
    return {name: _family(name, cache) for name in FAMILIES}


def _family(name: str, cache: Cache) -> Options:
    options = _common()
    table = BlockBasedOptions()
    if name == "urls":  # each is read about once: keeping what was read costs more than reading it
        table.disable_cache()
    else:
        table.set_block_cache(cache)
    if name in POINT_LOOKUPS:
        table.set_bloom_filter(10, False)
        table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
        table.set_data_block_hash_ratio(0.75)
    options.set_block_based_table_factory(table)
    return options


def _common() -> Options:
    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(8 * MIB)
    return options


def unlogged() -> WriteOptions:
    """For what can be made again: past RocksDB's own log."""
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, whatever the stub says
    return options
