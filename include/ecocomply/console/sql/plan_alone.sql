-- one row: nobody else gives out turns until this transaction ends
SELECT pg_advisory_xact_lock(hashtextextended('ecocomply dead letters', 0))
