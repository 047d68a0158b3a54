"""Recurrent models as people write them, and models that look like one: what each is made of, and how it is run."""
