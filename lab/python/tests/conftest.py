"""What pytest takes from `helpers`, in `bindings/python/tests`."""

from helpers import in_the_repository, pytest_runtest_logreport

__all__ = ["in_the_repository", "pytest_runtest_logreport"]
