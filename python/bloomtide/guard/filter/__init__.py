"""The keys of a column in a filter: of one process, or shared by all processes of a machine."""
