REVOKE ALL ON FUNCTION ecocomply_consultants() FROM PUBLIC
