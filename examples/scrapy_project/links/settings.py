"""Settings of the project: the first three lines are all that bloomtide needs."""

ADDONS = {"bloomtide.integrations.scrapy.Addon": 500}
BLOOMTIDE_CAPACITY = 1_000_000
BLOOMTIDE_VERIFY = "exact"

BOT_NAME = "links"
SPIDER_MODULES = ["links.spiders"]
LOG_LEVEL = "INFO"
