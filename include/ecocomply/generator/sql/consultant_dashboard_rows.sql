-- a row is what a consultant saw of a client yesterday
INSERT INTO consultant_dashboard (
    id, consultant_id, company_id, overdue_count, due_soon_count, open_gap_count, compliance_score, synced_at
)
SELECT md5('dashboard' || a.id)::uuid, a.consultant_id, a.company_id, 2, 9, 4, 87.5, pg_temp.at(pg_temp.today() - 1, 2)
FROM consultant_client_assignments AS a
JOIN generate_series(2, pg_temp.companies()) AS c ON a.id = pg_temp.make_id('client', c)
