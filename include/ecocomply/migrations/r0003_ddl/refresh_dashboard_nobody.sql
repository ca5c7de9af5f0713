REVOKE ALL ON FUNCTION refresh_compliance_dashboard(boolean) FROM PUBLIC
