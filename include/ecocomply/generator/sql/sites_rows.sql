-- a row is a site, each of another town than the company's others
INSERT INTO sites (id, company_id, name, country_code, region, created_at, updated_at)
SELECT pg_temp.make_id('site', n), pg_temp.make_id('company', pg_temp.company_of_site(n)),
       town.name || ' ' || pg_temp.pick('site', n, ARRAY['Works', 'Plant', 'Depot', 'Mill']), 'GB', town.region,
       pg_temp.at(pg_temp.today() - 1400, 9), pg_temp.at(pg_temp.today() - 1400, 9)
FROM generate_series(1, pg_temp.sites()) AS n
JOIN (VALUES
    (0, 'Bradford', 'ENG'), (1, 'Telford', 'ENG'), (2, 'Falkirk', 'SCT'), (3, 'Swansea', 'WLS'),
    (4, 'Runcorn', 'ENG'), (5, 'Grimsby', 'ENG'), (6, 'Larne', 'NIR'), (7, 'Derby', 'ENG')
) AS town (place, name, region) ON town.place = n % 8
