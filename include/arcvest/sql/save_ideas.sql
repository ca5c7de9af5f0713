-- a row is an article or a letter that no scan has found before
INSERT INTO idea_queue (source, source_name, url, title, summary, published_at)
SELECT f.source, f.source_name, f.url, f.title, nullif(f.summary, ''), f.published_at
FROM unnest(
    CAST(:sources AS text[]), CAST(:names AS text[]), CAST(:urls AS text[]), CAST(:titles AS text[]),
    CAST(:summaries AS text[]), CAST(:published AS timestamptz[])
) AS f (source, source_name, url, title, summary, published_at)
ORDER BY f.url
ON CONFLICT DO NOTHING
