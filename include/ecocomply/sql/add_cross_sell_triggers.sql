-- a row is a module that a document speaks of, which its company has not got, and which was not noted of it before
INSERT INTO cross_sell_triggers (company_id, target_module_id, trigger_source, detected_keywords, confidence)
SELECT d.company_id, f.module_id, d.id::text,
       -- an application may have them as JSON
       t.detected_keywords, f.confidence
FROM jsonb_to_recordset(CAST(:found AS jsonb)) AS f (
    document_id uuid, module_id uuid, keywords jsonb, confidence numeric
)
JOIN documents AS d ON d.id = f.document_id
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::cross_sell_triggers, jsonb_build_object('detected_keywords', f.keywords)
) AS t
WHERE NOT EXISTS (
    SELECT FROM module_activations AS a
    WHERE a.company_id = d.company_id
      AND a.module_id = f.module_id
      AND a.status = 'ACTIVE'
)
ORDER BY d.company_id, f.module_id, d.id
ON CONFLICT (company_id, target_module_id, trigger_source) DO NOTHING
RETURNING id, company_id, target_module_id, trigger_source
