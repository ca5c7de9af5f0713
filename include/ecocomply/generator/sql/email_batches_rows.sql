-- a row is a claim of last week's mail
INSERT INTO email_batches (id, provider, run_id, claimed_at)
SELECT pg_temp.make_id('batch', c), 'ecocomply_email', 'generated', pg_temp.at(pg_temp.today() - 7, 6)
FROM generate_series(1, pg_temp.companies()) AS c
