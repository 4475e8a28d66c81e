"""The Scrapy filter: its parts, its verdicts against Scrapy's own, and real crawls."""
