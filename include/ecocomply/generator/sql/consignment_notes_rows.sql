-- a row is a load that leaves a site; half of them are not checked yet
INSERT INTO consignment_notes (
    id, site_id, waste_stream_id, carrier_id, consignment_number, consignment_date, quantity, unit, ewc_code,
    destination_site_id, pre_validation_status, pre_validated_at, created_by, created_at, updated_at
)
SELECT pg_temp.make_id('note', 100 * s + k), pg_temp.make_id('site', s), stream.id,
       pg_temp.make_id('carrier', 3 * pg_temp.company_of_site(s) + 1 + pg_temp.roll('carried', 100 * s + k, 3)),
       'CN-' || (100 * s + k), pg_temp.today() - 2 * k, 1 + pg_temp.roll('load', 100 * s + k, 30),
       CASE WHEN k % 2 = 0 THEN 'TONNES' ELSE 'KG' END, stream.ewc_code, pg_temp.make_id('destination', k % 3),
       CASE WHEN k <= 4 THEN 'NOT_VALIDATED' ELSE 'PASSED' END,
       CASE WHEN k > 4 THEN pg_temp.at(pg_temp.today() - 2 * k + 1, 1) END,
       pg_temp.make_id('user', 9 * (pg_temp.company_of_site(s) - 1) + 7),
       pg_temp.at(pg_temp.today() - 2 * k, 10), pg_temp.at(pg_temp.today() - 2 * k, 10)
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN generate_series(1, 8) AS k
JOIN waste_streams AS stream ON stream.id = pg_temp.make_id('stream', 2 * s + k % 2)
