"""Train many small models of one shape at once. Each result is the same as if its model were trained alone."""

from bursar.learners.lockstep.average import AverageNetwork
from bursar.learners.lockstep.bilstm import BiLSTM
from bursar.learners.lockstep.image_convolution import ImageConvolution
from bursar.learners.lockstep.jobs import Job, Settings, Trained
from bursar.learners.lockstep.multitask import MultitaskTagger
from bursar.learners.lockstep.network import Batch, Network
from bursar.learners.lockstep.scores import accuracy, weighted_f1
from bursar.learners.lockstep.tagger import Tagger
from bursar.learners.lockstep.text_convolution import TextConvolution
from bursar.learners.lockstep.texts import Texts
from bursar.learners.lockstep.trainer import Training, logits, train, whole

__all__ = [
    "AverageNetwork",
    "Batch",
    "BiLSTM",
    "ImageConvolution",
    "Job",
    "MultitaskTagger",
    "Network",
    "Settings",
    "Tagger",
    "TextConvolution",
    "Texts",
    "Trained",
    "Training",
    "accuracy",
    "logits",
    "train",
    "weighted_f1",
    "whole",
]
