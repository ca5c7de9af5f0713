UPDATE runtime_monitoring SET exceedance_checked_at = :now WHERE exceedance_checked_at IS NULL
