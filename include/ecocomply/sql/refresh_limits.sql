-- a row is how long the rest of the transaction waits for a lock, and how long a statement of it may take
SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :statement, true)
