"""One room for all that is kept in databases: connections, transactions, forks, triggers and chains of hashes."""
