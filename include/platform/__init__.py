"""The platform's own records, in the database `almanac`: summaries, previews, alerts."""
