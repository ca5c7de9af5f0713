-- a row is a company; the first is a consultancy, where there are others
INSERT INTO companies (id, name, evidence_retention_years, created_at, updated_at)
SELECT pg_temp.make_id('company', n),
       CASE WHEN n = 1 AND pg_temp.companies() > 1 THEN 'Meridian Compliance Partners LLP' ELSE
           pg_temp.pick('company place', n, ARRAY['Aldgate', 'Brindle', 'Caldew', 'Derwent', 'Eskdale', 'Fosse',
               'Greystone', 'Hartwell', 'Irwell', 'Kennet', 'Lune', 'Medway'])
           || ' ' || pg_temp.pick('company trade', n, ARRAY['Foods', 'Chemicals', 'Aggregates', 'Plating',
               'Breweries', 'Dairies', 'Composites', 'Paper', 'Metals', 'Recycling']) || ' Ltd'
       END,
       CASE pg_temp.roll('retention', n, 4) WHEN 0 THEN NULL WHEN 1 THEN 3 ELSE 7 END,
       pg_temp.at(pg_temp.today() - 1500, 9), pg_temp.at(pg_temp.today() - 1500, 9)
FROM generate_series(1, pg_temp.companies()) AS n
