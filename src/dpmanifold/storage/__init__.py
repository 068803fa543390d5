"""One room for all that is kept in databases: connections, transactions, locks, forks, tables and chains of hashes."""
