GRANT EXECUTE ON FUNCTION refresh_compliance_dashboard(boolean) TO ecocomply_service
