"""The verified public file of one fit."""

from expost.publication.publication import Publication as Publication, total as total, wallet as wallet
