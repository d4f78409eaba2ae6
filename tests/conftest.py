from pathlib import Path

from hypothesis import settings

settings.register_profile("house", deadline=None)  # a busy machine is no failure
settings.load_profile("house")

# What tests are helped by, or is run on its own: looked through for doctests it would be run, and would load torch.
collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
