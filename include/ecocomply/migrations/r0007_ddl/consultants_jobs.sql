GRANT EXECUTE ON FUNCTION ecocomply_consultants() TO ecocomply_service, ecocomply_user
