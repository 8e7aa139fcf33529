"""The operations of a store, one file each: every class adds some to `LocalStore`."""
