"""What a model and people say of every item: labels, how sure, by whom; and the share of errors to expect."""

from bursar.predictions.acceptance import HeldOut, held_out
from bursar.predictions.predictions import Predictions
from bursar.predictions.saved import ModelDescription, export_model, load_model

__all__ = ["HeldOut", "ModelDescription", "Predictions", "export_model", "held_out", "load_model"]
