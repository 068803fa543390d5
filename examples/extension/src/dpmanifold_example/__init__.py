"""What dpmanifold does not have, added from outside: each thing in one file, found by one entry point."""
