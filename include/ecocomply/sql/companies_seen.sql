-- one row: the companies whose rows the user of this transaction may see
SELECT ecocomply_companies()
