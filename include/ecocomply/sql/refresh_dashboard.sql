-- a row is the answer that the dashboard shows the clocks as they are now
SELECT refresh_compliance_dashboard(:beside_readers)
