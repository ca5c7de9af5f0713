GRANT SELECT ON adoption TO ecocomply_service, ecocomply_user
