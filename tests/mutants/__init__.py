"""Small models and mutants of them, for tests that run models nobody vouches for through the packages: models.MODELS,
mutate.mutant, and calls.py, which runs them through the Python package."""
