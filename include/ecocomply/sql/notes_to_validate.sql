-- a row is a consignment note that nobody has checked since it last changed, with its carrier's licence
SELECT n.id, n.company_id, n.site_id, n.waste_stream_id, n.carrier_id, n.consignment_number, n.consignment_date,
       n.quantity, n.unit::text AS unit, n.ewc_code, n.destination_site_id, n.created_by, c.licence_number,
       c.licence_expiry_date, c.licence_tier::text AS licence_tier,
       md5(ROW(n.waste_stream_id, n.carrier_id, n.consignment_date, n.quantity, n.unit, n.ewc_code,
               n.destination_site_id)::text) AS seen
FROM consignment_notes AS n
LEFT JOIN contractors AS c ON c.id = n.carrier_id AND c.company_id = n.company_id
WHERE n.pre_validation_status = 'NOT_VALIDATED'
  -- what was consigned before the adoption is history, unless it is changed
  AND (n.consignment_date < (SELECT a.day FROM adoption AS a) AND n.updated_at <= (SELECT a.at FROM adoption AS a)) IS NOT TRUE
  AND (CAST(:company_id AS uuid) IS NULL OR n.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR n.id > CAST(:after AS uuid))
ORDER BY n.id
LIMIT :limit
