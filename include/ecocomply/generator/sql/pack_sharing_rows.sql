-- a row is a link that a regulator was sent
INSERT INTO pack_sharing (
    id, pack_id, distribution_id, distribution_method, distributed_to, shared_link_token, expires_at, status, sent_at
)
SELECT pg_temp.make_id('sharing', c), pg_temp.make_id('pack', 2 * c), pg_temp.make_id('distribution', c), 'SHARED_LINK',
       'inspector@regulator.example', md5('token' || pg_temp.make_id('sharing', c)), pg_temp.at(pg_temp.today() + 25, 11),
       'SENT', pg_temp.at(pg_temp.today() - 5, 12)
FROM generate_series(1, pg_temp.companies()) AS c
