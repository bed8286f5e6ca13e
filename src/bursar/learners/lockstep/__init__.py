"""Train many small models of one shape at once. Each result is the same as if its model were trained alone."""

from bursar.learners.lockstep.average import AverageNetwork
from bursar.learners.lockstep.convolution import ImageConvolution, TextConvolution
from bursar.learners.lockstep.network import Network, accuracy, weighted_f1
from bursar.learners.lockstep.recurrent import BiLSTM, Tagger
from bursar.learners.lockstep.texts import CodedTexts
from bursar.learners.lockstep.trainer import FitJob, LockstepTraining, Settings, Trained, logits, train, whole

__all__ = [
    "AverageNetwork",
    "BiLSTM",
    "CodedTexts",
    "FitJob",
    "ImageConvolution",
    "LockstepTraining",
    "Network",
    "Settings",
    "Tagger",
    "TextConvolution",
    "Trained",
    "accuracy",
    "logits",
    "train",
    "weighted_f1",
    "whole",
]
