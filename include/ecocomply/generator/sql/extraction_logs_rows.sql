-- a row is the reading of a document
INSERT INTO extraction_logs (
    id, document_id, run_key, extraction_timestamp, model_identifier, rule_library_version, segments_processed,
    obligations_extracted, flagged_for_review, processing_time_ms, ocr_required
)
SELECT pg_temp.make_id('extraction', n), d.id, 'generated', d.extraction_completed_at, 'gpt-4o', '1.6', 12, 9, 1,
       8000 + pg_temp.roll('reading', n, 9000), false
FROM generate_series(1, 4 * pg_temp.sites()) AS n
JOIN documents AS d ON d.id = pg_temp.make_id('document', n)
