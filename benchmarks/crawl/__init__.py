"""Real crawls of a local site by real Scrapy: `make crawl`."""
