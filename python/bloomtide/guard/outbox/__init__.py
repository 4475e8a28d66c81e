"""A change table that triggers fill, so that writers who know no guard are seen, too."""
