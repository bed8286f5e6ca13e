"""What a model and people say of every item: labels, how sure, by whom; and the share of errors to expect."""

from bursar.predictions.acceptance import Acceptance, HeldOut, held_out
from bursar.predictions.predictions import Prediction, Predictions
from bursar.predictions.saved import ModelDescription, TrainedModel, export_model, load_model

__all__ = [
    "Acceptance",
    "HeldOut",
    "ModelDescription",
    "Prediction",
    "Predictions",
    "TrainedModel",
    "export_model",
    "held_out",
    "load_model",
]
