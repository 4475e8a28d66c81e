"""Settings of the project: the first three lines are all that bloomery needs."""

ADDONS = {"bloomery.integrations.scrapy.Addon": 500}
BLOOMERY_CAPACITY = 1_000_000
BLOOMERY_VERIFY = "exact"

BOT_NAME = "links"
SPIDER_MODULES = ["links.spiders"]
LOG_LEVEL = "INFO"
