"""The queue engine: one way to claim, finish, fail, take back and watch the rows of any system's queue table.

`table` describes a table, `engine` does each operation in a transaction, `drain` works through what is due,
`heartbeat` keeps a claim alive, `schema` is what a migration puts into the database: columns, indexes, the
guard over status changes, the audit trail and the NOTIFY.
"""
