-- a row is a link from an obligation to its file; some were taken back
INSERT INTO obligation_evidence_links (id, obligation_id, evidence_id, linked_at, linked_by, unlinked_at)
SELECT pg_temp.make_id('link', n), pg_temp.make_id('obligation', n), e.id, e.created_at, e.uploaded_by,
       CASE WHEN pg_temp.roll('unlinked', n, 15) = 0 THEN pg_temp.at(pg_temp.today() - 1, 16) END
FROM generate_series(1, pg_temp.obligations()) AS n
JOIN evidence_items AS e ON e.id = pg_temp.make_id('evidence', n)
