-- one row that says whether the cause is on the ledger
SELECT EXISTS (SELECT 1 FROM alert WHERE cause = :cause)
