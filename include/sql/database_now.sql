-- the database's clock at this very moment
SELECT clock_timestamp()
