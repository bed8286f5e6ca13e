"""What a model and people say of every item: labels, how sure, by whom; and the share of errors to expect."""

from bursar.predictions.acceptance import Acceptance, HeldOut, held_out
from bursar.predictions.predictions import Prediction, Predictions

__all__ = ["Acceptance", "HeldOut", "Prediction", "Predictions", "held_out"]
