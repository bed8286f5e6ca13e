"""Train many small models of one shape at once. Each result is the same as if its model were trained alone."""

from bursar.learners.lockstep.average import AverageNetwork
from bursar.learners.lockstep.bilstm import BiLSTM
from bursar.learners.lockstep.image_convolution import ImageConvolution
from bursar.learners.lockstep.jobs import FitJob, Settings, Trained
from bursar.learners.lockstep.network import Network
from bursar.learners.lockstep.scores import accuracy, weighted_f1
from bursar.learners.lockstep.tagger import Tagger
from bursar.learners.lockstep.text_convolution import TextConvolution
from bursar.learners.lockstep.texts import CodedTexts
from bursar.learners.lockstep.trainer import LockstepTraining, logits, train, whole

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
