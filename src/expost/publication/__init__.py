"""The verified public file of one fit."""

from expost.publication.publication import Publication as Publication
from expost.publication.together import total as total
